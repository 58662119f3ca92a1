from lightning.pytorch import Trainer
from lightning.pytorch.plugins.environments import SLURMEnvironment

Trainer(plugins=[SLURMEnvironment(auto_requeue=False)], devices="auto")
