"""Shadow reports and promotion: what shadow runs would have written, compared with what was done, and what follows.

`report` is the way in: plain data for the command line and the console. `comparing` is pure; `others` reads what people
or the live system did; `evidence` and `promotion` are tasks of our own, so that what was compared and who promoted a
task stands in sealed journals like everything else. Sends nothing, judges no question.
"""
