import { useState } from "preact/hooks"
import { api, dataOf } from "../../api/client.ts"
import { pageAfter, readAll } from "../../api/lists.ts"
import { useResource } from "../../api/resource.ts"
import { Link } from "../../components/Link.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { SecretDialog } from "../../components/Secret.tsx"
import { Empty, Loaded, ProblemView } from "../../components/States.tsx"
import { viewedUser } from "../../router/location.ts"
import { webhookTexts as words } from "../../texts/en/webhooks.ts"
import { EndpointCard } from "./EndpointCard.tsx"
import { EndpointDialogs } from "./EndpointDialogs.tsx"
import type { Asked, What } from "./EndpointDialogs.tsx"
import type { Endpoint } from "./endpointForm.ts"
import { WebhookTabs } from "./WebhookTabs.tsx"

/** What is said of what was done last. */
type Note =
  | { readonly delivery: string }
  | { readonly resent: number }
  | { readonly cause: unknown }
  | undefined

/** `/webhooks`: the endpoints of the user. */
export default function WebhooksPage() {
  const user = viewedUser()
  const endpoints = useResource(user ?? "", () =>
    readAll((cursor) =>
      dataOf(api.GET("/manage/v1/webhook-endpoints", { params: { query: pageAfter(100, cursor) } }))
    )
  )
  const [asked, setAsked] = useState<Asked>(undefined)
  const [secret, setSecret] = useState<string | undefined>(undefined)
  const [note, setNote] = useState<Note>(undefined)
  const isReadOnly = user !== undefined
  const act = (what: What, endpoint: Endpoint) => {
    setNote(undefined)
    if (what === "test") void sendTest(endpoint).then(setNote)
    else if (what === "resume") void resume(endpoint).then(setNote).then(endpoints.reload)
    else setAsked({ what, endpoint })
  }
  return (
    <>
      <PageHeader title={words.title}>
        {!isReadOnly && (
          <button type="button" class="primary" onClick={() => setAsked({ what: "create" })}>
            {words.create}
          </button>
        )}
      </PageHeader>
      <WebhookTabs />
      <p class="faint">{words.about}</p>
      <NoteView note={note} />
      <Loaded of={endpoints}>
        {(all) =>
          all.length === 0 ? (
            <Empty title={words.empty}>
              <p>{words.emptyDetail}</p>
            </Empty>
          ) : (
            <ul class="cards" aria-label={words.endpoints}>
              {all.map((it) => (
                <EndpointCard key={it.id} endpoint={it} onAct={act} />
              ))}
            </ul>
          )
        }
      </Loaded>
      <EndpointDialogs
        asked={asked}
        onClose={() => setAsked(undefined)}
        onChanged={endpoints.reload}
        onSecret={setSecret}
        onResent={(resent) => setNote({ resent })}
      />
      {secret !== undefined && (
        <SecretDialog
          title={words.secretTitle}
          detail={words.secretDetail}
          what={words.secret}
          secret={secret}
          onClose={() => setSecret(undefined)}
        />
      )}
    </>
  )
}

const sendTest = async ({ id }: Endpoint): Promise<Note> => {
  try {
    const { delivery_id: delivery } = await dataOf(
      api.POST("/manage/v1/webhook-endpoints/{id}/test", { params: { path: { id } } })
    )
    return { delivery }
  } catch (cause) {
    return { cause }
  }
}

const resume = async ({ id }: Endpoint): Promise<Note> => {
  try {
    await dataOf(
      api.PATCH("/manage/v1/webhook-endpoints/{id}", {
        params: { path: { id } },
        body: { enabled: true }
      })
    )
    return undefined
  } catch (cause) {
    return { cause }
  }
}

const NoteView = ({ note }: { readonly note: Note }) => {
  if (note === undefined) return null
  if ("cause" in note) return <ProblemView cause={note.cause} />
  return (
    <p class="banner" role="status">
      {"resent" in note ? (
        words.resent(note.resent)
      ) : (
        <>
          {words.sent} <Link to={`/webhooks/deliveries/${note.delivery}`}>{words.toDelivery}</Link>
        </>
      )}
    </p>
  )
}
