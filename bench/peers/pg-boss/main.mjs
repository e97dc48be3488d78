/** A task in pg-boss: one job submits, the next one polls; both may run twice. */
import { Pool } from "pg"
import { PgBoss } from "pg-boss"
import {
  complete,
  concurrency,
  connectionString,
  fetchPicture,
  pollSeconds,
  serve,
  start,
  submit
} from "../job.mjs"

const pool = new Pool({ connectionString, max: 10 })
// Jobs of a process that died are looked for every second, so that a run of the benchmark is short
const boss = new PgBoss({
  connectionString,
  useListenNotify: true,
  superviseIntervalSeconds: 1,
  monitorIntervalSeconds: 1
})
boss.on("error", console.error)
await boss.start()
await boss.createQueue("submit", { notify: true })
// A notification comes when a job is created, not when it is due
await boss.createQueue("poll")

/** The statements and jobs of one transaction. */
const together = async (work) => {
  const client = await pool.connect()
  try {
    await client.query("BEGIN")
    const db = { executeSql: (text, values) => client.query(text, values) }
    await work(client, (queue, id, options) => boss.send(queue, { id }, { ...options, db }))
    await client.query("COMMIT")
  } catch (error) {
    await client.query("ROLLBACK")
    throw error
  } finally {
    client.release()
  }
}
const dueNext = () => ({ startAfter: new Date(Date.now() + pollSeconds * 1000) })

const work = (queue, perform) =>
  boss.work(
    queue,
    {
      batchSize: concurrency,
      localConcurrency: 4,
      pollingIntervalSeconds: 0.5,
      notifyPollingIntervalSeconds: 0.5,
      burstWhenBatchFull: true
    },
    (jobs) => Promise.all(jobs.map(({ data }) => perform(data.id)))
  )

await work("submit", async (id) => {
  const { rows } = await pool.query("SELECT prompt, handle FROM tasks WHERE id = $1", [id])
  if (rows[0].handle !== null) return
  const handle = await submit(rows[0].prompt)
  await together(async (client, send) => {
    await client.query(start, [id, handle])
    await send("poll", id, dueNext())
  })
})

await work("poll", async (id) => {
  const { rows } = await pool.query("SELECT handle FROM tasks WHERE id = $1", [id])
  const isDone = await fetchPicture(id, rows[0].handle)
  if (isDone) await pool.query(complete, [id])
  else await boss.send("poll", { id }, dueNext())
})

serve((prompt) =>
  together(async (client, send) => {
    const { rows } = await client.query("INSERT INTO tasks (prompt) VALUES ($1) RETURNING id", [
      prompt
    ])
    await send("submit", rows[0].id)
  })
)
