import signal

from lightning.pytorch import Trainer
from lightning.pytorch.plugins.environments import SLURMEnvironment

Trainer(plugins=[SLURMEnvironment(requeue_signal=signal.SIGHUP, auto_requeue=True)])
