"""What becomes of candidates, made from commits and files; gates judged by it."""
