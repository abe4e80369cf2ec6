"""An attempt belongs to this process as long as its lease lasts: it is renewed, watched and given back."""
