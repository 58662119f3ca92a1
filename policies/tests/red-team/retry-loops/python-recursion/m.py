from model import train_model


def main(n=0):
    try:
        train_model()
    except Exception:
        main(n + 1)


main()
