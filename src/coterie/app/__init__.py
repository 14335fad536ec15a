"""The explorer: a saved run in the browser, where people inspect, correct and export its clusters."""
