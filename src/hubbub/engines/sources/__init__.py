"""Sources that rows are read from: Parquet as it is, and text, Arrow and frames as Parquet copies."""
