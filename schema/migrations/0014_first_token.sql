-- Of a stream: milliseconds from the beginning of the call to its first piece. Null: no stream, or from before.
alter table calls add column first_token_ms integer;
