from helpers import put

put()
