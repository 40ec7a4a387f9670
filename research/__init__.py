"""What made the published figures and pages: outside the wheel and the manual."""
