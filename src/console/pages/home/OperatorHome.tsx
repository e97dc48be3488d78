import { api, dataOf } from "../../api/client.ts"
import { useResource } from "../../api/resource.ts"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Loaded } from "../../components/States.tsx"
import { Tile, Tiles } from "../../components/Tiles.tsx"
import { showDuration } from "../../format/time.ts"
import { texts } from "../../texts/en.ts"

const words = texts.home.queue

export const OperatorHome = () => {
  const queues = useResource("queues", () => dataOf(api.GET("/manage/v1/queues", {})))
  return (
    <>
      <PageHeader title={texts.home.title} />
      <h2>{texts.home.queues}</h2>
      <Loaded of={queues}>
        {({ deliveries, tasks, wallets }) => (
          <Tiles>
            <Tile name={words.unfinished}>{tasks.unfinished}</Tile>
            <Tile name={words.waiting}>{tasks.waiting_for_slot}</Tile>
            <Tile name={words.deliveries}>{deliveries.unfinished}</Tile>
            <Tile name={words.lateness}>{showDuration(deliveries.lateness_ms)}</Tile>
            <Tile name={words.drift} isBad={wallets.drift !== 0}>
              {wallets.drift}
            </Tile>
          </Tiles>
        )}
      </Loaded>
    </>
  )
}
