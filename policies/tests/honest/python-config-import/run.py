import settings
from lib import loop

loop.run(settings)
