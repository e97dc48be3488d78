-- Bytes of the inputs in `artifacts` of each user, written with them. What may be kept is decided under its row.
create table kept_inputs (
  user_id uuid primary key,
  bytes bigint not null check (bytes >= 0)
);
insert into kept_inputs select user_id, sum(bytes) from artifacts where role = 'input' group by user_id;
