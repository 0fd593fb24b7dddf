"""Channels: messages that producers write to a topic, a queue or an inbox get into the control log from there.

The log stays the one sequence of messages, and the driver its one writer. A channel is one more way into it:

``envelope``, ``wire``, ``proto/cloudevent.proto``   what a message looks like: pure
``transports/inbox``                                what an inbox in the storage looks like: pure
``ports``                                           what is asked of a channel
``intake``                                          reads, has logged, acknowledges; waits for a broker that is away
``admission``                                       which messages are taken: pure
``cluster_requests``                                messages that the operator has to carry out
``pending_replies``                                 open messages, replies that were not sent yet, and their numbers
``replies``                                         the reply to a message's sender: pure
``transports/``: ``kafka``, ``rabbitmq``, ``storage``   the brokers, and the inbox

Design: docs/design/channels.md.
"""
