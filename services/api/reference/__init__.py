"""The API's own description: an OpenAPI document worth reading, and a page that shows it without the internet."""
