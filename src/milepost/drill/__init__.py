"""The drill: interrupt a task on purpose at every point, resume it, and compare with an undisturbed run.

For users, from the command line (`milepost drill`) and in pytest (the fixture `drill`). Nothing else of Milepost
imports this room.
"""
