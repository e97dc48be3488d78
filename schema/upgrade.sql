-- Runs first in the transaction that changes the schema of an existing database (ADR 0158). Every transaction that
-- moves money locks a wallet first. This statement therefore waits for running transactions, and new ones wait for it
-- and then call the new functions.
lock table wallets in exclusive mode;
