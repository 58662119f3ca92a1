-- For Lmod. Copy it to MODULEPATH/slurm-agent-tools/VERSION.lua, after
--     make install PREFIX=/apps/slurm-agent-tools/VERSION
-- and set the folder here if yours is another one.
local prefix = pathJoin("/apps/slurm-agent-tools", myModuleVersion())

help("Guarded Slurm tools for coding agents, over MCP and as a command line: slurm-agent-tools")
whatis("Name: slurm-agent-tools")
whatis("Version: " .. myModuleVersion())
whatis("Description: guarded Slurm tools for coding agents")
conflict("slurm-agent-tools")

prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
