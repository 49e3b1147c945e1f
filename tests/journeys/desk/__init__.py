"""The scripted journeys at the desk: a real browser before the real stack.

    def test_x(house: House, sit_down: SitDown, way: Way) -> None:
        request = house.asks("send_email", to=[...], subject="...", body="...")
        rita = sit_down("rita", way)
        rita.open("/")
        rita.hand.open_first()
        rita.hand.arm("approve")
        rita.hand.choose(1)
        rita.hand.commit()
        moments.window_over(request)
        rita.accessible()

What is pressed is pressed by a hand (`hands.py`): the mouse, or keys alone. After each
of its steps that swaps content the desk checks that the focus is on something, that
the console is silent and that nothing was asked of another place. Time passes by
moving what is stored (`moments.py`); the clock of the processes is PostgreSQL's.
"""
