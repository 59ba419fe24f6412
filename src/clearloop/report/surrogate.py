from clearloop.surrogate.figure import draw as draw_quality
