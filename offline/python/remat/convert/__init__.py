"""Converters. Into a trace: remat.convert.fx (PyTorch FX, torch.export, a module's training step), kineto, snapshot. To other people's models and
back: checkmate, rotor, moccasin. Each says at its head what is kept; peak and cost always are, to the byte and the nanosecond."""
