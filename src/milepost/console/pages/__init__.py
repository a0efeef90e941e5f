"""One module for each page: gathers what it shows as JSON data, from `views`. Knows no template and no request."""
