//! What a fresh machine needs: apt packages, a local venv. Each step says what it does and is safe to repeat.
