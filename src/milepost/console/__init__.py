"""`milepost ui`: the pages people read and answer in. Holds no rule and no SQL; what is shown comes from `views`.

Needs the `console` extra; nothing below imports it. Started by the command line.
"""
