"""The sections of the GPU suite. run.py starts them; base.py is what they share."""
