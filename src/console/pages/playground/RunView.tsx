import { useEffect, useState } from "preact/hooks"
import { basePath } from "../../api/address.ts"
import { api, send } from "../../api/client.ts"
import { ApiFailure } from "../../api/problem.ts"
import type { Schemas } from "../../api/schema.ts"
import { Link } from "../../components/Link.tsx"
import { Media } from "../../components/media/Media.tsx"
import { ProblemView, TaskErrorView } from "../../components/States.tsx"
import { Credits, Status } from "../../components/Values.tsx"
import { texts } from "../../texts/en.ts"
import { playgroundTexts as words } from "../../texts/en/playground.ts"

type TaskResult = Schemas["TaskResult"]

const pollMillis = 2000

const hasEnded = ({ task_info: { status } }: TaskResult): boolean =>
  status === "completed" || status === "failed"

/** Follows a task by its event stream or, if that fails, by polling. */
const followTask = (
  path: string,
  onResult: (result: TaskResult) => void,
  onRefused: (cause: ApiFailure) => void
): (() => void) => {
  let timer: ReturnType<typeof setInterval> | undefined
  const stop = () => {
    source.close()
    clearInterval(timer)
  }
  const take = (result: TaskResult) => {
    if (hasEnded(result)) stop()
    onResult(result)
  }
  const source = new EventSource(`${basePath}${path}`)
  source.addEventListener("message", ({ data }) => take(JSON.parse(String(data))))
  source.addEventListener("error", () => {
    source.close()
    timer ??= setInterval(() => {
      send<TaskResult>("GET", path).then(take, (cause: unknown) => {
        // The link is to a task that no longer exists or belongs to someone else
        if (!(cause instanceof ApiFailure)) return
        stop()
        onRefused(cause)
      })
    }, pollMillis)
  })
  return stop
}

interface Props {
  readonly id: string
  readonly model: Schemas["Model"]
  readonly onEnd: () => void
}

/** A task from create to end: followed, cancelled, with its results. */
export const RunView = ({ id, model, onEnd }: Props) => {
  const path = `${model.path}/${id}`
  const [result, setResult] = useState<TaskResult | undefined>(undefined)
  const [charged, setCharged] = useState<string | undefined>(undefined)
  const [cause, setCause] = useState<unknown>(undefined)
  const refuse = (failure: ApiFailure) => {
    setCause(failure)
    onEnd()
  }
  useEffect(() => followTask(path, setResult, refuse), [path])
  const isEnded = result !== undefined && hasEnded(result)
  useEffect(() => {
    if (!isEnded) return
    onEnd()
    api.GET("/manage/v1/tasks/{id}", { path: { id } }).then(
      ({ receipt }) => setCharged(receipt.captured),
      () => undefined
    )
  }, [isEnded, id])
  const cancel = () => {
    send("DELETE", path).catch(setCause)
  }
  const { error, status = "pending" } = result?.task_info ?? {}
  return (
    <>
      <div class="run-head">
        <span role="status">
          <Status of={status} />
        </span>
        {charged !== undefined && (
          <span class="faint">
            {words.charged}: <Credits amount={charged} /> {texts.credits}
          </span>
        )}
        <span class="spacer" />
        {!isEnded && (
          <button type="button" class="small danger" onClick={cancel}>
            {texts.cancel}
          </button>
        )}
        <Link to={`/tasks/${id}`}>{words.toTask}</Link>
      </div>
      {cause !== undefined && <ProblemView cause={cause} />}
      {error !== undefined && <TaskErrorView error={error} />}
      {result?.[model.result] !== undefined ? (
        <Media kind={model.result} urls={result[model.result] ?? []} />
      ) : (
        !isEnded && cause === undefined && <p class="waiting working">{words.working}</p>
      )}
    </>
  )
}
