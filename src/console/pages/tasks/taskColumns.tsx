import type { Schemas } from "../../api/schema.ts"
import { Link } from "../../components/Link.tsx"
import type { Column } from "../../components/PagedTable.tsx"
import { Credits, Duration, Status, Time } from "../../components/Values.tsx"
import { texts } from "../../texts/en.ts"

type Task = Schemas["TaskListItem"]

/** What was charged, or is held while the task runs. */
const Cost = ({ receipt, status }: Task) =>
  status === "pending" || status === "processing" ? (
    <span class="faint">{texts.tasks.heldCost(receipt.held)}</span>
  ) : (
    <Credits amount={receipt.captured} />
  )

export const taskColumns: ReadonlyArray<Column<Task>> = [
  {
    title: texts.tasks.model,
    cell: ({ id, model, vendor }) => (
      <Link to={`/tasks/${id}`}>
        {vendor}/{model}
      </Link>
    )
  },
  { title: texts.tasks.status, cell: ({ status }) => <Status of={status} /> },
  { title: texts.tasks.created, cell: ({ created_at }) => <Time at={created_at} /> },
  {
    title: texts.tasks.duration,
    isNumber: true,
    cell: ({ created_at, ended_at }) => <Duration from={created_at} to={ended_at} />
  },
  { title: texts.tasks.cost, isNumber: true, cell: (task) => <Cost {...task} /> },
  {
    title: texts.tasks.trace,
    cell: ({ trace_id }) =>
      trace_id === null ? texts.none : <code title={trace_id}>{trace_id.slice(0, 8)}…</code>
  }
]
