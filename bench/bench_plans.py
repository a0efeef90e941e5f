"""The plans the workloads run."""

from __future__ import annotations

import os
import resource
import time

from milepost import step, task

REST = "x" * 992


@step(next="The next trivial step.")
def trivial(number: int) -> dict[str, str]:
    return {"text": f"{number:08d}{REST}"}


@step(next="The next trivial step.")
async def trivial_async(number: int) -> dict[str, str]:
    return {"text": f"{number:08d}{REST}"}


@task
def many_steps(count: int) -> int:
    for number in range(count):
        trivial(number)
    return count


@task
async def many_async_steps(count: int) -> int:
    for number in range(count):
        await trivial_async(number)
    return count


@step(next="The next hundred.")
def hundred(start: int) -> int:
    for number in range(start, start + 100):
        trivial(number)
    return start


@task
def nested_steps(count: int) -> int:
    for start in range(0, count, 100):
        hundred(start)
    last()
    return count


@step
def large_output(number: int) -> str:
    return f"{number:06d}" + "y" * 100_000


@task
def large_outputs(count: int) -> int:
    for number in range(count):
        large_output(number)
    return count


@step
def last() -> float:
    """Die here the first time; the second time say when this line was reached."""
    if os.environ.get("BENCH_LAST") != "die":
        print(time.time(), flush=True)
    os._exit(0)


@task
def flat_steps(count: int) -> int:
    for number in range(count):
        trivial(number)
    last()
    return count


def large(count: int) -> None:
    """Run with large outputs and print the peak memory in KB."""
    large_outputs.run("large", count=count)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
