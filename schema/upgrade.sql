-- Runs first in the transaction that changes the schema of a database that has one (ADR 0158). Whoever moves money locks
-- a wallet before all else: what has begun is awaited, and what begins now waits and calls the new functions.
lock table wallets in exclusive mode;
