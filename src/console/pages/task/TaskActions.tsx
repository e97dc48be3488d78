import { useMemo, useState } from "preact/hooks"
import { send } from "../../api/client.ts"
import { newOperationId } from "../../api/operations.ts"
import type { Schemas } from "../../api/schema.ts"
import { CopyButton } from "../../components/CopyButton.tsx"
import { Confirm, DialogButton } from "../../components/form/DialogForm.tsx"
import { taskPath } from "../../format/paths.ts"
import { hrefOf, navigate, viewedUser } from "../../router/location.ts"
import { taskTexts } from "../../texts/en/task.ts"
import { hasLostMedia, withMedia } from "./inputs.ts"
import { testOf } from "./testOf.ts"

type Task = Schemas["TaskTimeline"]

const words = taskTexts

/** The actions on a task. An operator viewing as a user cannot change anything. */
export const TaskActions = ({ task }: { readonly task: Task }) => {
  const [isAsked, setAsked] = useState(false)
  const [quote, setQuote] = useState(task.receipt.held)
  // A retry after a lost response buys nothing more. A success opens another task
  const operation = useMemo(newOperationId, [task.id])
  const isReadOnly = viewedUser() !== undefined
  const isRunning = task.status === "pending" || task.status === "processing"
  const askAgain = async () => {
    const priced = await withMedia(task)
      .then((body) => send<Schemas["Quote"]>("POST", `${taskPath(task)}?dry_run=true`, body))
      .catch(() => undefined)
    if (priced !== undefined) setQuote(priced.quote.amount)
    setAsked(true)
  }
  const runAgain = async () => {
    const created = await send<Schemas["CreatedTask"]>(
      "POST",
      taskPath(task),
      await withMedia(task),
      {
        "idempotency-key": operation
      }
    )
    navigate(hrefOf(`/tasks/${created.task_info.id}`))
  }
  const cancel = async () => {
    await send("DELETE", `${taskPath(task)}/${task.id}`)
  }
  const isBlocked = hasLostMedia(task)
  return (
    <>
      <CopyButton text={testOf(task)} what={words.testName} label={words.copyTest} />
      {isRunning && !isReadOnly && (
        <DialogButton label={words.cancelTask} class="danger">
          {(close) => (
            <Confirm
              title={words.cancelTitle}
              detail={words.cancelDetail}
              action={words.cancelTask}
              isDangerous
              onSubmit={cancel}
              onClose={close}
            />
          )}
        </DialogButton>
      )}
      {!isReadOnly && (
        <button
          type="button"
          disabled={isBlocked}
          title={isBlocked ? words.runAgainBlocked : undefined}
          onClick={() => void askAgain()}
        >
          {words.runAgain}
        </button>
      )}
      {isAsked && (
        <Confirm
          title={words.runAgainTitle}
          detail={words.runAgainDetail(quote)}
          action={words.runAgain}
          onSubmit={runAgain}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  )
}
