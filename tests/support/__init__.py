"""What tests stand on: scripted models, live servers, editors to drive, samples to read."""
