"""Plants: the true system of a task, if there is one to test on, for the engine and for Gymnasium."""
