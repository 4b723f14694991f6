import OutboxCore
import Testing

/// What the registry is told of lanes.
@Suite struct LaneReportTests {
    private static let start = DispatchScene.start

    @Test func aLaneIsReportedWithWhatKeepsItAndUntilWhen() {
        var scene = DispatchScene(lanes: 2)
        #expect(
            scene.state.laneReports == [
                LaneReport(name: "apns/test/0", routes: [1]), LaneReport(name: "apns/test/1", routes: [2]),
            ])
        let (lostAt, again) = (scene.at(1), scene.at(4))
        scene.state.updateLane(0) { $0.disconnected(retryAt: again, because: "refused", at: lostAt) }
        let (failedAt, later) = (scene.at(4), scene.at(9))
        scene.state.updateLane(0) { $0.disconnected(retryAt: later, because: "timed out", at: failedAt) }
        let down = LaneReport(
            name: "apns/test/0", condition: .down, reason: "timed out", since: Self.start + .seconds(1),
            until: Self.start + .seconds(9), routes: [1])
        #expect(scene.state.laneReports[0] == down, "it stays down until it is connected")

        scene.state.pause(lane: 0, status: 403, reason: "InvalidProviderToken", for: .seconds(60), now: scene.at(10))
        let paused = LaneReport(
            name: "apns/test/0", condition: .paused, reason: "403 InvalidProviderToken",
            since: Self.start + .seconds(10), until: Self.start + .seconds(70), routes: [1])
        #expect(scene.state.laneReports[0] == paused)
        scene.state.pause(lane: 0, status: 429, reason: "Other", for: .seconds(600), now: scene.at(20))
        #expect(scene.state.laneReports[0] == paused, "one pause at a time")
        let over = scene.at(70)
        scene.state.updateLane(0) { _ = $0.answeredWell(route: 1, at: over) }
        #expect(scene.state.laneReports[0] == down)
        scene.state.updateLane(0) { $0.connected() }
        #expect(scene.state.laneReports[0] == LaneReport(name: "apns/test/0", routes: [1]))
    }

    @Test func aPausedTopicStandsBesideItsLane() {
        var scene = DispatchScene()
        scene.state.updateLane(0) { $0.setRoutes([1, 2]) }
        scene.state.pause(
            lane: 0, route: 2, status: 400, reason: "TopicDisallowed", for: .seconds(60), now: scene.at(5))
        #expect(
            scene.state.laneReports == [
                LaneReport(name: "apns/test/0", routes: [1]),
                LaneReport(
                    name: "apns/test/0/route-2", condition: .paused, reason: "400 TopicDisallowed",
                    since: Self.start + .seconds(5), until: Self.start + .seconds(65), routes: [2]),
            ])
    }

    @Test func aLaneWithoutAccessIsDownUntilItHasBoth() {
        var scene = DispatchScene()
        let (start, lostAt, soon, later) = (scene.at(0), scene.at(1), scene.at(4), scene.at(9))
        scene.state.updateLane(0) {
            $0.disconnected(retryAt: soon, because: "refused", at: start)
            $0.accessLost(retryAt: later, because: "timeout", at: lostAt)
        }
        let down = LaneReport(
            name: "apns/test/0", condition: .down, reason: "no access token: timeout",
            since: Self.start + .seconds(1), until: Self.start + .seconds(9), routes: [1])
        #expect(scene.state.laneReports == [down])
        scene.state.updateLane(0) { $0.connected() }
        #expect(scene.state.laneReports == [down], "a connection is not enough")
        #expect(scene.state.lanes[0].opensAt(after: scene.at(2)) == later)
        scene.state.updateLane(0) { $0.accessGranted() }
        #expect(scene.state.laneReports == [LaneReport(name: "apns/test/0", routes: [1])])
    }

    @Test func aWorkerThatStopsServesNoRoute() {
        var scene = DispatchScene()
        _ = scene.state.drain(at: scene.at(0))
        #expect(scene.state.laneReports == [LaneReport(name: "apns/test/0", routes: [])])
    }
}
