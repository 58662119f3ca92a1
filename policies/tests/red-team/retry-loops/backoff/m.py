import backoff


@backoff.on_exception(backoff.expo, RuntimeError, max_tries=4)
def train():
    do_training()


train()
