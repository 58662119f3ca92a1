from tenacity import retry, stop_after_attempt


@retry(stop=stop_after_attempt(5))
def main():
    run_training()


main()
