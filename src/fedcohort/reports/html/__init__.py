"""One page that holds all of a run: opens offline, in any browser, on a phone and on paper."""
