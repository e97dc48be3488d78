import type { Schemas } from "../../api/schema.ts"
import { Link } from "../../components/Link.tsx"
import { showCharge } from "../../format/credits.ts"
import { showDuration } from "../../format/time.ts"
import { chatTexts } from "../../texts/en/chat.ts"
import { countIn } from "../calls/tokens.tsx"
import type { Picture } from "./chat.ts"
import { urlOf } from "./chat.ts"

const words = chatTexts

/** A question with its response, which grows while it is received. */
export interface Turn {
  readonly question: string
  readonly pictures?: ReadonlyArray<Picture>
  /** The number of pictures that the browser did not keep. */
  readonly lostPictures?: number
  readonly answer: string
  readonly isStopped: boolean
  /** The receipt. */
  readonly call?: Schemas["Call"]
}

interface Props {
  readonly turns: ReadonlyArray<Turn>
  readonly isBusy: boolean
}

export const Talk = ({ isBusy, turns }: Props) =>
  turns.length === 0 ? (
    <p class="waiting">{words.empty}</p>
  ) : (
    <ol class="talk" aria-label={words.talk}>
      {turns.map((turn, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- a turn has no other name than its place
        <li key={index}>
          <p class="talk-name faint">{words.you}</p>
          <TurnPictures turn={turn} />
          <p class="talk-text">{turn.question}</p>
          <p class="talk-name faint">{words.model}</p>
          <p class="talk-text">{turn.answer}</p>
          {turn.isStopped && <p class="faint">{words.stopped}</p>}
          {isBusy && index === turns.length - 1 && (
            <p class="faint" role="status">
              {words.answering}
            </p>
          )}
          {turn.call !== undefined && <Cost call={turn.call} />}
        </li>
      ))}
    </ol>
  )

const TurnPictures = ({ turn: { lostPictures: lost = 0, pictures = [] } }: TurnProps) => (
  <>
    {pictures.length > 0 && (
      <p class="talk-pictures">
        {pictures.map((picture, index) => (
          // oxlint-disable-next-line react/no-array-index-key -- the same picture may be there twice
          <img key={index} src={urlOf(picture)} alt={words.pictureOf(index + 1)} />
        ))}
      </p>
    )}
    {lost > 0 && <p class="faint">{words.lostPictures(lost)}</p>}
  </>
)

interface TurnProps {
  readonly turn: Turn
}

const Cost = ({ call }: { readonly call: Schemas["Call"] }) => {
  const { cost, id, time_to_first_token_ms: first, usage } = call
  const count = (name: string) => (countIn(usage, name) ?? 0).toLocaleString("en")
  return (
    <p class="faint">
      {[
        words.cost(showCharge(cost)),
        words.tokens(count("inputTokens"), count("outputTokens")),
        ...(first === null ? [] : [words.first(showDuration(first))])
      ].join(" · ")}
      {" · "}
      <Link to={`/calls/${id}`}>{words.toCall}</Link>
    </p>
  )
}
