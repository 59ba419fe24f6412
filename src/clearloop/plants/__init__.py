"""The true system, where there is one to test on: a task's [plant], for the engine and for Gymnasium."""
