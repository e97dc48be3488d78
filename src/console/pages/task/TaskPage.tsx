import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import { usePoll } from "../../api/poll.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { Share } from "../../components/chart/Share.tsx"
import { IdPair } from "../../components/Id.tsx"
import { Link } from "../../components/Link.tsx"
import { Media } from "../../components/media/Media.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Loaded, TaskErrorView } from "../../components/States.tsx"
import { Timeline } from "../../components/Timeline.tsx"
import { Ago, Credits, Json, Pair, Status } from "../../components/Values.tsx"
import { parseCredits } from "../../format/credits.ts"
import { modelPath } from "../../format/paths.ts"
import { promptOf } from "../../format/prompt.ts"
import { millisBetween, showDuration } from "../../format/time.ts"
import type { PageProps } from "../../routes.ts"
import { texts } from "../../texts/en.ts"
import { taskTexts } from "../../texts/en/task.ts"
import { hasLostMedia } from "./inputs.ts"
import { TaskActions } from "./TaskActions.tsx"
import { timelineOf } from "./timeline.ts"

type Task = Schemas["TaskTimeline"]

const words = taskTexts

/** `/tasks/:id`: a task and its history. */
export default function TaskPage({ params: { id = "" } }: PageProps) {
  const task = useResource(id, () => api.GET("/manage/v1/tasks/{id}", { path: { id } }))
  useLive((event) => {
    const isOwn =
      event.type === "poll" ||
      (event.type === "task" && event.data.id === id && event.data.status !== task.data?.status) ||
      (event.type === "delivery" && event.data.task_id === id && isNews(task.data, event.data))
    if (isOwn) task.reload()
  })
  // Progress is not an event
  usePoll(() => {
    if (task.data?.progress !== undefined) task.reload()
  })
  return (
    <>
      <PageHeader title={titleOf(task.data)} back="/tasks">
        {task.data !== undefined && <TaskActions task={task.data} />}
      </PageHeader>
      <Loaded of={task}>{(it) => <TaskView task={it} />}</Loaded>
    </>
  )
}

const titleMax = 80

/** The prompt, as a title. */
const titleOf = (task: Task | undefined): string | undefined => {
  const prompt = task === undefined ? "" : promptOf(task.body)
  if (prompt === "") return undefined
  const line = prompt.replaceAll(/\s+/gu, " ").trim()
  return line.length > titleMax ? `${line.slice(0, titleMax).trimEnd()}…` : line
}

/** A new stream repeats the current state, which is no news. */
const isNews = (task: Task | undefined, delivery: Schemas["WebhookDelivery"]): boolean =>
  task?.deliveries.find(({ id }) => id === delivery.id)?.updated_at !== delivery.updated_at

const TaskView = ({ task }: { readonly task: Task }) => (
  <>
    <p class="facts">
      <Status of={task.status} />
      <Link to={modelPath(task)}>
        {task.vendor}/{task.model}
      </Link>
      <Ago at={task.created_at} />
      {task.ended_at !== null && (
        <span>{words.ran(showDuration(millisBetween(task.created_at, task.ended_at)))}</span>
      )}
      {task.sandbox && <span class="badge">{texts.sandbox}</span>}
    </p>
    {task.error !== null && <TaskErrorView error={task.error} />}
    <div class="main-and-side">
      <div>
        {task.status !== "failed" && (
          <section>
            <h2>{words.result}</h2>
            {task.result === null ? (
              <p class="waiting">
                {words.noResult}
                <Progress percent={task.progress} />
              </p>
            ) : task.result_kind === "responses" || task.result_kind === "batches" ? (
              task.result.map((url) => (
                <p key={url}>
                  <a href={url}>{url.split("?", 1)[0]}</a>
                </p>
              ))
            ) : (
              <Media kind={task.result_kind} urls={task.result} />
            )}
          </section>
        )}
        <section>
          <h2>{words.input}</h2>
          <Json label={words.input} value={task.body} />
          <Inputs task={task} />
        </section>
      </div>
      <div>
        <section>
          <h2>{words.timeline}</h2>
          <Timeline moments={timelineOf(task)} />
        </section>
        <section>
          <h2>{words.receipt}</h2>
          <Receipt {...task.receipt} />
        </section>
        <section>
          <h2>{words.details}</h2>
          <Details task={task} />
        </section>
      </div>
    </div>
  </>
)

/** Renders nothing if the vendor reports no progress. */
const Progress = ({ percent }: { readonly percent: number | undefined }) =>
  percent === undefined ? null : (
    <>
      <span>{words.progress(percent)}</span>
      <Share name={words.progress(percent)} share={percent / 100} />
    </>
  )

const kinds = [
  ["images", "image/"],
  ["videos", "video/"],
  ["audios", "audio/"]
] as const

/** The media sent with the request, while they are stored. */
const Inputs = ({ task }: { readonly task: Task }) => (
  <>
    {task.inputs.length > 0 && <h3>{words.inputMedia}</h3>}
    {kinds.map(([kind, type]) => (
      <Media
        key={kind}
        kind={kind}
        nameOf={texts.media.input}
        urls={task.inputs.filter((it) => it.media_type.startsWith(type)).map(({ url }) => url)}
      />
    ))}
    {hasLostMedia(task) && <p class="faint">{words.inputGone}</p>}
  </>
)

const Receipt = ({ captured, held, released }: Task["receipt"]) => (
  <dl class="pairs">
    {(
      [
        [words.held, held],
        [words.captured, captured],
        [words.released, released]
      ] as const
    )
      .filter(([, amount]) => parseCredits(amount) !== 0n)
      .map(([name, amount]) => (
        <Pair key={name} name={name}>
          <Credits amount={amount} /> {texts.credits}
        </Pair>
      ))}
  </dl>
)

const Details = ({ task: { catalog, id, trace_id } }: { readonly task: Task }) => (
  <dl class="pairs">
    <IdPair name={words.id} value={id} />
    <IdPair name={texts.states.traceId} value={trace_id} />
    <IdPair name={texts.pages.catalog} value={catalog} />
  </dl>
)
