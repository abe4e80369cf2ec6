"""Webhooks: endpoints, the deliveries that they receive, and what becomes of both.

`fan_out` handles moves and events: it chooses the endpoints, writes the deliveries and submits the tasks that carry
them. `turn` handles the outcomes of those tasks for one endpoint, under the endpoint's lock. `rules`, `judging` and
`bodies` are pure. See docs/decisions/0091.
"""
