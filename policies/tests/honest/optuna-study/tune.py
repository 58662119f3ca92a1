import optuna


def objective(trial):
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    for step in range(100):
        trial.report(lr * step, step)
        if trial.should_prune():
            raise optuna.TrialPruned()
    return lr


optuna.create_study().optimize(objective, n_trials=50)
