"""How people hear that something waits: facts and a link, never the agent's words."""
