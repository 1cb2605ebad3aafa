"""The running of Paceline: settings, servers, processes, and the handling around every web request."""
