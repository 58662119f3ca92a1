import asyncio


async def main():
    await asyncio.create_subprocess_shell("sbatch next.sh")


asyncio.run(main())
