"""What was tried of a routine: its names, the calls, what was wrong."""

from library import NOT_SUPPORTED


class Family:
    def __init__(self):
        self.calls, self.names, self.wrong = 0, set(), []
        self.refused = {}  # names, by the combinations of types
        self.declined = []  # calls of names that do other work

    def called(self, name, status):
        """Notes a call; whether there is a result to look at."""
        self.names.add(name)
        if status == NOT_SUPPORTED:
            self.refused[name] = []
            return False
        self.calls += 1
        if status != 0:
            self.wrong.append(f"{name}: status {status}")
        return status == 0

    def expect(self, name, what, found, wanted):
        """Notes a call whose answer is `wanted`."""
        self.names.add(name)
        self.calls += 1
        if found != wanted:
            self.wrong.append(f"{name}: {what}: {found}, not {wanted}")
        return found == wanted
