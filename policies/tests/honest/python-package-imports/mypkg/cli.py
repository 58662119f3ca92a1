import argparse

from mypkg import data
from .models import net


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda", help="cuda or cpu")
    args = parser.parse_args()
    net.fit(data.load(), args.device)


if __name__ == "__main__":
    main()
