"""Presenters without windows of our own: zenity, pinentry, SSH_ASKPASS, the terminal."""
