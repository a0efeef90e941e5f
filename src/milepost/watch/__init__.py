"""`milepost watch`: resumes what was answered or is due, restarts what died, and tells people what is asked.

A foreground supervisor: each run goes on in a process of its own, started as often as a bound allows. It holds no rule
of a resume; a run it is wrong about refuses or asks. Called by the command line.
"""
