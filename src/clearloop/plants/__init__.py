"""The true system, where there is one to test on: a task's [plant], lowered to the engine or as an environment."""
