import type { Schemas } from "../../api/schema.ts"
import { Link } from "../../components/Link.tsx"
import { createdColumn } from "../../components/list/createdColumn.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { Thumbnail } from "../../components/media/Preview.tsx"
import { Credits, Duration, None, Status } from "../../components/Values.tsx"
import { taskTitle } from "../../format/prompt.ts"
import { texts } from "../../texts/en.ts"
import { filterTexts } from "../../texts/en/filters.ts"

type Task = Schemas["TaskListItem"]
type TaskState = Pick<Task, "created_at" | "ended_at" | "receipt" | "status"> & {
  readonly error: { readonly title: string } | null
}

/** The charge or, while the task runs, the hold. */
const Cost = ({ receipt, status }: TaskState) => {
  if (status === "pending" || status === "processing") {
    return <span class="faint">{texts.tasks.heldCost(receipt.held)}</span>
  }
  return status === "failed" ? <None /> : <Credits amount={receipt.captured} />
}

/** The outcome, for all lists of tasks. */
export const stateColumns: ReadonlyArray<Column<TaskState>> = [
  {
    title: filterTexts.status,
    isPlain: true,
    isLead: true,
    cell: ({ error, status }) => (
      <>
        <Status of={status} />
        {error !== null && <span class="faint"> · {error.title}</span>}
      </>
    )
  },
  {
    title: texts.tasks.duration,
    isNumber: true,
    isMinor: true,
    isPlain: true,
    cell: ({ created_at, ended_at }) => <Duration from={created_at} to={ended_at} />
  },
  { title: texts.tasks.cost, isNumber: true, cell: (task) => <Cost {...task} /> },
  createdColumn(texts.tasks.created)
]

export const taskColumns: ReadonlyArray<Column<Task>> = [
  {
    title: texts.tasks.task,
    isPlain: true,
    cell: (task) => (
      <Link to={`/tasks/${task.id}`} class="titled">
        <Thumbnail of={task.preview} />
        <span class="clip">{taskTitle(task)}</span>
      </Link>
    )
  },
  {
    title: filterTexts.model,
    isPlain: true,
    isAbout: true,
    cell: ({ model, vendor }) => (
      <span title={`${vendor}/${model}`} class="clip narrow">
        {model}
      </span>
    )
  },
  {
    title: filterTexts.key,
    isPlain: true,
    isAbout: true,
    cell: ({ key_name: name }) =>
      name === null ? <None /> : <span class="clip narrow">{name}</span>
  },
  ...stateColumns
]
