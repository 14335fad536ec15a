"""The explorer: a run in the browser, where its clusters are looked at, corrected and handed on."""
