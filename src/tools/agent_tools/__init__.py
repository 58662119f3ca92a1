"""Each tool as `python -m tools.agent_tools.NAME`.

Python puts the working folder, which is the project, before its own library. It is taken away here, before anything is
imported: a file of the project may have the name of a module.
"""

import sys

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:  # so it is while `python -m` looks for one of our modules
    del sys.path[0]
