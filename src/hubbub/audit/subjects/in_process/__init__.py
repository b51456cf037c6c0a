"""Run the product inside this process on made-up tables, so that an audit can watch what it counts and draws."""
